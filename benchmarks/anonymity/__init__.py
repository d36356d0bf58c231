"""The privacy test of USC (Tura-Vecino et al., section 3.3) on any system that changes a voice."""
