"""MuyGPyS: a GP on the nearest rows of each query, tuned by leaving rows out."""

import numpy as np

from .contender import OnePerOutput, Prediction

N_NEIGHBORS, N_BATCH = 30, 500


class MuyGPs(OnePerOutput):
    name = "MuyGPyS"
    packages = ("muygpys",)
    settings = (
        f"{N_NEIGHBORS} neighbours, a Matern-5/2 kernel with one length scale; this "
        f"and the noise by `Bayes_optimize` with 5 first points and 20 steps on "
        f"{N_BATCH} rows, as in the tutorials."
    )

    def fit_one(self, X, y):
        from MuyGPyS.gp import MuyGPS
        from MuyGPyS.gp.deformation import Isotropy, l2
        from MuyGPyS.gp.hyperparameter import AnalyticScale, Parameter
        from MuyGPyS.gp.kernels import Matern
        from MuyGPyS.gp.noise import HomoscedasticNoise
        from MuyGPyS.neighbors import NN_Wrapper
        from MuyGPyS.optimize import Bayes_optimize
        from MuyGPyS.optimize.batch import sample_batch
        from MuyGPyS.optimize.loss import lool_fn

        # The batch is drawn from NumPy's global generator.
        np.random.seed(self.seed)  # noqa: NPY002
        neighbors = NN_Wrapper(X, N_NEIGHBORS, nn_method="exact", algorithm="ball_tree")
        model = MuyGPS(
            kernel=Matern(
                smoothness=Parameter(2.5),
                deformation=Isotropy(
                    l2, length_scale=Parameter("log_sample", (1e-1, 1e2))
                ),
            ),
            noise=HomoscedasticNoise("log_sample", (1e-6, 1.0)),
            scale=AnalyticScale(),
        )
        rows, nearest = sample_batch(neighbors, min(N_BATCH, len(X)), len(X))
        tensors = model.make_train_tensors(rows, nearest, X, y)
        crosswise, pairwise, targets, nearest_targets = tensors
        model = Bayes_optimize(
            model,
            targets,
            nearest_targets,
            crosswise,
            pairwise,
            loss_fn=lool_fn,
            verbose=False,
            init_points=5,
            n_iter=20,
            random_state=self.seed,
        )
        model = model.optimize_scale(pairwise, nearest_targets)
        return model, neighbors, X, y

    def predict_one(self, model, X):
        model, neighbors, X_train, y_train = model
        nearest, _ = neighbors.get_nns(X)
        crosswise, pairwise, targets = model.make_predict_tensors(
            np.arange(len(X)), nearest, X, X_train, y_train
        )
        K, K_cross = model.kernel(pairwise), model.kernel(crosswise)
        mean = model.posterior_mean(K, K_cross, targets)
        variance = model.posterior_variance(K, K_cross)
        # The package's variance is that of the function, without noise.
        variance = variance + model.noise() * model.scale()
        return Prediction(np.ravel(mean), np.sqrt(np.ravel(variance)))
