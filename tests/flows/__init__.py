"""A workflow for each operation of the builder, with what an undisturbed run of it gives: what crash points, kills, faults and
interleavings are tried on.
"""

from tests.flows.attendant import Attendant
from tests.flows.case import Case
from tests.flows.catalogue import catalogue
from tests.flows.ledger import Entry, FileLedger, Ledger, MemoryLedger

__all__ = ["Attendant", "Case", "Entry", "FileLedger", "Ledger", "MemoryLedger", "catalogue"]
