"""Every table of the report, in its order."""

from __future__ import annotations

from analysis.findings import Findings
from analysis.report.appendix import performance, varying_batch_size
from analysis.report.audit_tables import audit, equality, paper_audit, paper_comparison, paper_order
from analysis.report.columns import without_empty_axes
from analysis.report.cost_tables import batches, coordination_cost, coordination_request, request_times, resources
from analysis.report.formats import Table
from analysis.report.rate_tables import cells, comparison, coordination_tax, latency


def every_table(found: Findings) -> list[Table]:
    """All tables that these records have rows for, in the order of the report."""
    made = [
        *(performance(found, architecture) for architecture in found.architectures),
        varying_batch_size(found),
        comparison(found),
        coordination_tax(found),
        request_times(found),
        coordination_request(found),
        cells(found),
        paper_comparison(found),
        paper_order(found),
        paper_audit(found),
        latency(found),
        coordination_cost(found),
        resources(found),
        batches(found),
        audit(found),
        equality(found),
    ]
    return [without_empty_axes(table) for table in made if table.rows]
