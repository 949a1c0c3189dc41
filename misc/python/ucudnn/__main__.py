"""python -m ucudnn: the command `ucudnn`."""
from ucudnn import _command

_command()
