"""The program on record, as it is seen from outside: whatever a change changes shows as a difference in these files.

`pytest tests/golden --update-golden` writes the texts anew; whoever commits that says why. The zips and pictures were
written by the versions of the database that they are named after (`record.py`), and are never written again.
"""
