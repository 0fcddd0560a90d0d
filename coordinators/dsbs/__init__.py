"""DSBS, the decentralized stateful broker system: every broker holds the tables, and they tell each other of changes.

`rows` and `tables` are the data and their merge; `machine` decides what to do (pure: an event and the time in, actions
out); `coordinator` is the shell that sends, waits and writes. docs/dsbs.md says what is promised and what is not.
"""
