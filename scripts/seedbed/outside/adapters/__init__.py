"""Readers of the result files of other programs, a module each; `read.FORMATS` names them."""
