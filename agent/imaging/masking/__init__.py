"""Masked editing on a model without mask support: exact outside, aligned and blended inside, refused on a mismatch.

Arguments and results are plain values that can be stored or sent. The pixel libraries are imported with the first call.
A call takes up to a few seconds of CPU time: run it in a thread. `__init__.pyi` lists the public names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
