"""What the samplers converge to, against quadrature and closed forms."""
