"""Hunts for disagreements on random streams: between syncval and the model, with the Khronos layer, on legal orders.

* `random_text` makes random streams of effects as text (`vkharness.text_form`); `agreement_fuzz` gives them
  to syncval and the model.
* `random_steps` makes random programs as lists of steps (with `random_rendering` for render passes) and shrinks them;
  `step_player` (with `rendering_player`) runs them on a device;
  `layer_fuzz` does so beside the Khronos layer, `order_fuzz` in the orders that their synchronization allows.

`vkharness fuzz agreement|layer|orders` starts them.
"""
