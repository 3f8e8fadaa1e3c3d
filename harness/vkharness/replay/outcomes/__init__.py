"""Outcomes of a stream: each turns the steps of a trace into the plan of one run.

!| module, in reading order | contents |
|---|---|
!| `executor` | runs a plan on a device |
| `serial` | submission order, the reference |
!| `reorder`, `legal_order_runs` | one other legal order; runs of several, compared with the serial run |
| `witness` | the outcome that a hazard makes possible |
!| `jobs` | serial, native and witness runs, from blocks to a result |
"""
