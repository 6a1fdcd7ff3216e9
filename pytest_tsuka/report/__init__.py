"""What people look at: terminal, JUnit properties, and (with extras) pages."""
