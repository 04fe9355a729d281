"""Conversions under faults that a seed decides, each run to its end in spite of them.

    python faults --seed 0 --rounds 200

`plan` makes a round of a seed, `sites` the dumps; `process` runs the command and stops it at a
step, `disturb` is what then happens to it, `verdict` says what is wrong with what came of it;
`rounds` puts them in order. A failed round prints its seed, and replays with it.
"""
