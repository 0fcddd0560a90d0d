"""Rows of the tables at random: few names and small counters, so that they meet and tie."""

from __future__ import annotations

from hypothesis import strategies as st

from coordinators.dsbs.tables.rows import LeaderRow, MemberRow, OffsetRow, Row, Status, TableRow, TopicRow
from coordinators.model import Broker, TopicSettings

ids = st.integers(1, 3)
counters = st.integers(0, 3)
names = st.sampled_from(["a", "b"])
brokers = st.builds(Broker, ids, st.sampled_from(["x", "y"]), st.just(1), st.integers(1, 2))
replicas = st.lists(ids, min_size=1, max_size=3, unique=True).map(tuple)
settings = st.builds(TopicSettings, counters, st.none() | counters, st.none() | counters)

members = st.builds(MemberRow, brokers, counters, counters, st.sampled_from(Status))
live_topics = st.builds(TopicRow, names, counters, ids, st.lists(replicas, min_size=1, max_size=2).map(tuple), settings)
tombstones = st.builds(TopicRow, names, counters, ids, st.just(()), st.just(TopicSettings()), st.just(True))
leaders = st.builds(
    LeaderRow, names, st.integers(0, 3), counters, ids, counters, counters, ids, st.just((1, 2, 3))
)  # fmt: skip
offsets = st.builds(
    OffsetRow, names, names, counters, counters, counters, st.integers(0, 2**63 - 1), st.integers(-1, 5), st.text()
)
table_rows: st.SearchStrategy[TableRow] = st.one_of(members, live_topics, tombstones, leaders)
rows: st.SearchStrategy[Row] = st.one_of(table_rows, offsets)
