"""The last step of objective perturbation: noise that hides where, inside its certified ball, the solver stopped.

The proof of objective perturbation speaks of the exact minimiser w*. A solver returns some point within a public radius
r of it. Spherical Laplace noise of rate epsilon_seal / (2 r) makes any two such points indistinguishable up to
epsilon_seal; the two costs add. Proof: proofs/seal.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from confide.privacy.noise import Entropy
from confide.types import Weights


@dataclass(frozen=True, slots=True)
class Seal:
    """Spherical Laplace noise that covers the distance between computed and exact minimiser.

    Parameters
    ----------
    epsilon : float
        Share of the budget, positive.
    radius : float
        Public bound on the distance between the computed weights and the exact minimiser.
    """

    epsilon: float
    radius: float

    @property
    def rate(self) -> float:
        """Rate of the spherical Laplace noise."""
        return self.epsilon / (2.0 * self.radius) * (1.0 - 2.0**-40)

    def expected_norm(self, n_weights: int) -> float:
        """Expected L2 norm of the noise."""
        return n_weights / self.rate

    def apply(self, weights: Weights, entropy: Entropy) -> Weights:
        """The weights (k, D) that may leave. The bits of this noise are independent of all drawn before."""
        return weights + entropy.spherical_laplace(weights.shape[0], weights.shape[1], self.rate)
