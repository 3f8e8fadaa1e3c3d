"""vkharness: mirrors Vulkan calls into a synchronization validator and shows the hazards it finds."""
