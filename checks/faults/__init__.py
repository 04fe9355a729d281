"""Fault injection: disturb conversions with random faults, and check how they end.

    python checks/faults --seed 0 --rounds 200

`plan` plans a round from a seed, `sites` makes the dumps, `process` runs the command and pauses it
at a step, `disturb` applies the fault, `verdict` checks how the command ends, and `rounds` calls
these in order. A failed round prints its seed, with which it can be repeated.
"""
