"""Every table of the report, in its order."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.findings import Findings
from analysis.report import rate_tables, why
from analysis.report.appendix import performance, varying_batch_size
from analysis.report.audit_tables import (
    audit,
    equality,
    paper_audit,
    paper_comparison,
    paper_explain,
    paper_order,
    published_beside,
)
from analysis.report.columns import without_empty_axes
from analysis.report.cost_tables import batches, coordination_cost, coordination_request, request_times, resources
from analysis.report.formats import Table
from analysis.report.naming import Name


def every_table(found: Findings, names: Mapping[str, Name] | None = None) -> list[Table]:
    """All tables that these records have rows for, in the order of the report."""
    made = [
        why.why(found, names or {}),
        rate_tables.comparison(found),
        rate_tables.pooled(found),
        rate_tables.zero(found),
        rate_tables.load(found),
        rate_tables.cells(found),
        rate_tables.coordination_tax(found),
        request_times(found),
        coordination_request(found),
        coordination_cost(found),
        resources(found),
        batches(found),
        published_beside(found),
        paper_comparison(found),
        paper_order(found),
        paper_explain(found),
        paper_audit(found),
        equality(found),
        audit(found),
        rate_tables.windows(found),
        *(performance(found, architecture) for architecture in found.architectures),
        varying_batch_size(found),
    ]
    return [without_empty_axes(table) for table in made if table.rows]
