"""models_profile.json: what was measured, and for whom it still holds."""
