"""Masked editing on a model without a mask: exact outside, aligned and blended inside, refused when it does not fit.

Everything here takes and gives plain values and may be kept or sent; the pixel libraries load with the first call.
Each call computes for up to a few seconds: run it in a thread. What there is stands in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
