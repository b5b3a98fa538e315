"""Judges: what Kafka's own tools and real brokers said about a log, in a form that our answers can be held against.

kafka_dump, kafka_dump_text   the texts of DumpLogSegments, of every release, as plain values
kafka_json                    our decoded records in the words of that tool
dump_comparison               our batches and records of a segment against its dump, field by field
broker_answers, group_answers what brokers answered, in the columns of our tables
state_comparison              our state against those answers
replays                       our state of the log of every answer, after its load and after expiry passes
fidelity                      how much of this was compared, as figures for docs/fidelity.md
corpus                        where logs, dumps and answers lie, and which belong together
make_slices                   makes the bundled part out of a whole corpus
"""
