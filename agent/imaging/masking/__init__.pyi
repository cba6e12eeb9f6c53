"""What masked editing gives, each from the module it is loaded from when it is first asked for."""

from .edits import change_inside as change_inside
from .edits import drift as drift
from .edits import finish_edit as finish_edit
from .edits import keep_only as keep_only
from .edits import plan_edit as plan_edit
from .edits import plan_expansion as plan_expansion
from .edits import regrow as regrow
from .masks import grow_mask as grow_mask
from .masks import read_mask as read_mask
from .values import DEFAULT_FEATHER_PX as DEFAULT_FEATHER_PX
from .values import Box as Box
from .values import Drift as Drift
from .values import EditOutcome as EditOutcome
from .values import EditPlan as EditPlan
from .values import Frame as Frame
from .values import Mask as Mask
from .values import MaskProblem as MaskProblem
from .values import MaskRefused as MaskRefused
from .values import Notice as Notice
from .values import Reason as Reason
