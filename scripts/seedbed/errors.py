"""The one error type that is meant for users: what is wrong, where, what was found, what to do."""

UNKNOWN_HINT = (  # where too much of a split is unknown to the model
    "check the encoding of the texts (UTF-8?) and that the model's language is theirs; if the texts "
    "are right, raise checks.max_unknown_share in the config"
)


class SeedbedError(Exception):
    """Bad input, told so that its reader can mend it.

    Args:
        what: what is wrong, in one sentence.
        where: file and line, or config key.
        found: the offending value.
        hint: what to do about it.
    """

    def __init__(self, what: str, *, where: str = "", found: object = None, hint: str = ""):
        self.what, self.where, self.found, self.hint = what, where, found, hint
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.found is not None:
            lines.append(f"  found: {self.found}")
        if self.hint:
            lines.append(f"  hint:  {self.hint}")
        return "\n".join(lines)

    def __reduce__(self):
        return (_rebuild, (self.what, self.where, self.found, self.hint))


def _rebuild(what: str, where: str, found: object, hint: str) -> SeedbedError:
    return SeedbedError(what, where=where, found=found, hint=hint)
