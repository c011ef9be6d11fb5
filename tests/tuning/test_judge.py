"""Claims about how candidates are compared on rows held out."""

import numpy as np
import pytest

from overcover.tuning._judge import Judge
from overcover.tuning._problem import Candidate
from overcover.tuning.prediction_loss import HeldOut

CAREFUL, SMOOTH = (Candidate(name, np.zeros(2)) for name in ("matern12", "rbf"))


class Given(Judge):
    """A judge of errors that are given: those of CAREFUL and of SMOOTH."""

    def __init__(self, careful, smooth):
        self.errors = {"matern12": careful, "rbf": smooth}
        super().__init__(None, CAREFUL)

    def predict(self, candidate, part):
        errors = self.errors[candidate.kernel][:, None]
        return HeldOut(errors, np.ones(len(errors)), np.arange(len(errors)) // 10)


@pytest.fixture
def errors():
    """Of 200 rows; those of the second candidate are smaller by a tenth."""
    careful = np.random.default_rng(0).normal(size=200)
    return careful, 0.9 * careful


def test_the_candidate_with_smaller_errors_is_better(errors):
    judge = Given(*errors)
    assert judge.gain(CAREFUL, SMOOTH) == -judge.gain(SMOOTH, CAREFUL) > 0


def test_a_corrupted_output_does_not_decide(errors):
    gains = []
    for size in (30.0, 60.0):
        for one, factor in zip(errors, (1.0, 2.0)):
            one[7] = factor * size
        gains.append(Given(*errors).gain(CAREFUL, SMOOTH))
    assert gains[0] == pytest.approx(gains[1])
    assert gains[0] > 0


def test_an_error_that_another_candidate_avoids_counts_in_full(errors):
    errors[1][7] = 100.0
    judge = Given(*errors)
    loss = judge.gain(SMOOTH, CAREFUL)
    errors[1][7] = 1000.0
    assert Given(*errors).gain(SMOOTH, CAREFUL) > loss > 0
    assert judge.best([SMOOTH, CAREFUL]) is CAREFUL
    assert not judge.is_as_good(CAREFUL, SMOOTH, 0.1)


def test_a_candidate_that_cannot_be_factorised_loses(errors):
    class Broken(Given):
        def predict(self, candidate, part):
            if candidate is SMOOTH:
                raise np.linalg.LinAlgError
            return super().predict(candidate, part)

    judge = Broken(*errors)
    assert judge.gain(CAREFUL, SMOOTH) == -np.inf
    assert judge.best([SMOOTH, CAREFUL]) is CAREFUL
