"""Run conversions to their end while faults, chosen by a seed, happen to them.

    python faults --seed 0 --rounds 200

`plan` makes a round from a seed, `sites` makes the dumps, `process` runs the command and stops it
at a step, `disturb` applies the fault, `verdict` checks the result, and `rounds` calls these in
order. A failed round prints its seed; the same seed repeats the round.
"""
