"""GPyTorch's SGPR: Titsias' sparse GP regression on all rows at once."""

import numpy as np

from .contender import OnePerOutput, Prediction

N_INDUCING = 500
# A step costs milliseconds for every thousand rows, so both are bounded together.
MOST_ROWS, MOST_STEPS, N_PASSES = 5000, 100, 500_000


class SGPR(OnePerOutput):
    name = "GPyTorch SGPR"
    packages = ("gpytorch", "torch")
    settings = (
        f"{N_INDUCING} inducing points, an RBF kernel with a length scale for "
        "each input, Adam with a rate of 0.1; 100 steps, as in the tutorial, on at "
        "most 5,000 random rows or, for several outputs, 50 steps on at most 10,000 "
        "rows divided by their number, because all rows would take too long."
    )
    n_passes = N_PASSES

    def fit(self, X, Y):
        n_outputs = Y.shape[1]
        n_rows = min(MOST_ROWS, 2 * MOST_ROWS // n_outputs)
        rows = np.random.default_rng(self.seed).permutation(len(X))[:n_rows]
        self.n_steps = min(MOST_STEPS, max(1, self.n_passes // (n_rows * n_outputs)))
        super().fit(X[rows], Y[rows])

    def fit_one(self, X, y):
        import torch
        from gpytorch.likelihoods import GaussianLikelihood
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch.manual_seed(self.seed)
        torch.set_num_threads(self.n_threads)
        X, y = torch.as_tensor(X).float(), torch.as_tensor(y).float()
        likelihood = GaussianLikelihood()
        model = _exact(X, y, likelihood)
        model.train()
        likelihood.train()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        evidence = ExactMarginalLogLikelihood(likelihood, model)
        for _ in range(self.n_steps):
            optimizer.zero_grad()
            loss = -evidence(model(X), y)
            loss.backward()
            optimizer.step()
        fitted = model.eval(), likelihood.eval()
        # The first prediction solves what all others share.
        self.predict_one(fitted, X[:1])
        return fitted

    def predict_one(self, model, X):
        import torch

        model, likelihood = model
        with torch.no_grad():
            answer = likelihood(model(torch.as_tensor(X).float()))
            return Prediction(
                answer.mean.double().numpy(), answer.variance.sqrt().double().numpy()
            )


def _exact(X, y, likelihood):
    """The tutorial's model."""
    import torch
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.kernels import InducingPointKernel, RBFKernel, ScaleKernel
    from gpytorch.means import ConstantMean
    from gpytorch.models import ExactGP

    inducing = X[torch.randperm(len(X))[:N_INDUCING]].clone()

    class Model(ExactGP):
        def __init__(self):
            super().__init__(X, y, likelihood)
            self.mean_module = ConstantMean()
            full = ScaleKernel(RBFKernel(ard_num_dims=X.shape[1]))
            self.covar_module = InducingPointKernel(
                full, inducing_points=inducing, likelihood=likelihood
            )

        def forward(self, X):
            return MultivariateNormal(self.mean_module(X), self.covar_module(X))

    return Model()
