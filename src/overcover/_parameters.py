"""Nested parameters of a part of an estimator, also if the part is None or a name."""

from sklearn.base import BaseEstimator


class NestedPart(BaseEstimator):
    """An estimator with another inside: an instance, a name or None. The first base."""

    _part = "machine"
    """The parameter that holds the part."""

    def _part_from(self, value):
        """The instance that None or a name stands for; None for other values."""
        raise NotImplementedError

    def get_params(self, deep=True):
        """Parameters of this estimator and, if deep, of the part, ``part__name``."""
        params = super().get_params(deep)
        part = self._part_from(params[self._part]) if deep else None
        if part is not None:
            nested = part.get_params().items()
            params |= {f"{self._part}__{name}": value for name, value in nested}
        return params

    def set_params(self, **params):
        """Set parameters; ``part__parameter`` replaces a part of None or a name."""
        prefix = f"{self._part}__"
        nested = {k.removeprefix(prefix): k for k in params if k.startswith(prefix)}
        value = params.get(self._part, getattr(self, self._part))
        part = self._part_from(value) if nested else None
        if part is not None:
            values = {name: params.pop(key) for name, key in nested.items()}
            params[self._part] = part.set_params(**values)
        elif nested and not hasattr(value, "set_params"):
            names = ", ".join(nested.values())
            raise ValueError(
                f"{self._part}={value!r} has no parameters, so {names} cannot be set. "
                f"Give a {self._part} that has them."
            )
        return super().set_params(**params)
