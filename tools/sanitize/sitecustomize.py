"""Every Python of `make sanitize` starts with this: the path decides where armwise is found, not the editable install.

An editable install puts a finder before the path, which takes the ordinary kernels of src whatever PYTHONPATH says.
"""

import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "_editable_skbc_armwise"]
