"""The ledger of the specification: sentences that fix an access, an order or a scope, each bound to what judges it."""
