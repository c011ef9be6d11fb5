"""GPyTorch's SVGP: a variational posterior of inducing points, by mini-batches."""

from .contender import OnePerOutput, Prediction

N_INDUCING, BATCH = 500, 1024
N_STEPS, MOST_EPOCHS = 300, 100


class SVGP(OnePerOutput):
    name = "GPyTorch SVGP"
    packages = ("gpytorch", "torch")
    settings = (
        f"{N_INDUCING} inducing points, batches of {BATCH:,} rows and Adam with a rate "
        "of 0.01, as in the tutorial; an RBF kernel with a length scale for each "
        f"input; {N_STEPS} steps, shared between the outputs, but at most "
        f"{MOST_EPOCHS} passes over the rows; the last quarter of the steps has a "
        "tenth of the rate."
    )
    n_steps = N_STEPS

    def fit(self, X, Y):
        n_batches = -(-len(X) // BATCH)
        n_steps = min(self.n_steps // Y.shape[1], MOST_EPOCHS * n_batches)
        self.n_steps_each = max(1, n_steps)
        super().fit(X, Y)

    def fit_one(self, X, y):
        import torch
        from gpytorch.likelihoods import GaussianLikelihood
        from gpytorch.mlls import VariationalELBO

        torch.manual_seed(self.seed)
        torch.set_num_threads(self.n_threads)
        X, y = torch.as_tensor(X).float(), torch.as_tensor(y).float()
        order = torch.randperm(len(X))
        model = _approximate(X[order[:N_INDUCING]].clone())
        likelihood = GaussianLikelihood()
        bound = VariationalELBO(likelihood, model, num_data=len(X))
        parts = [{"params": model.parameters()}, {"params": likelihood.parameters()}]
        optimizer = torch.optim.Adam(parts, lr=0.01)
        slower = torch.optim.lr_scheduler.MultiStepLR(
            optimizer, [3 * self.n_steps_each // 4], gamma=0.1
        )
        model.train()
        likelihood.train()
        for batch in _batches(len(X), self.n_steps_each):
            optimizer.zero_grad()
            loss = -bound(model(X[batch]), y[batch])
            loss.backward()
            optimizer.step()
            slower.step()
        return model.eval(), likelihood.eval()

    def predict_one(self, model, X):
        import torch

        model, likelihood = model
        with torch.no_grad():
            answer = likelihood(model(torch.as_tensor(X).float()))
            return Prediction(
                answer.mean.double().numpy(), answer.variance.sqrt().double().numpy()
            )


def _approximate(inducing):
    """The tutorial's model."""
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.kernels import RBFKernel, ScaleKernel
    from gpytorch.means import ConstantMean
    from gpytorch.models import ApproximateGP
    from gpytorch.variational import (
        CholeskyVariationalDistribution,
        VariationalStrategy,
    )

    class Model(ApproximateGP):
        def __init__(self):
            posterior = CholeskyVariationalDistribution(len(inducing))
            strategy = VariationalStrategy(
                self, inducing, posterior, learn_inducing_locations=True
            )
            super().__init__(strategy)
            self.mean_module = ConstantMean()
            kernel = RBFKernel(ard_num_dims=inducing.shape[1])
            self.covar_module = ScaleKernel(kernel)

        def forward(self, X):
            return MultivariateNormal(self.mean_module(X), self.covar_module(X))

    return Model()


def _batches(n_rows, n_batches):
    """Random batches; every row once before any row twice."""
    import torch

    n_given = 0
    while n_given < n_batches:
        for batch in torch.randperm(n_rows).split(BATCH)[: n_batches - n_given]:
            n_given += 1
            yield batch
