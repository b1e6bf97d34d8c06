"""Tables and check lists on a terminal."""


def table(header, rows):
    """Plain text with aligned columns; the first one to the left, the others to the right."""
    cells = [[str(c) for c in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row):
        return "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))])

    return "\n".join([line(cells[0]), "  ".join("-" * w for w in widths), *map(line, cells[1:])])


class Checks:
    """Collects what must hold and says at the end what does."""

    def __init__(self):
        self.results = []
        self.notes = []

    def that(self, holds, text):
        self.results.append((bool(holds), text))

    def note(self, text):
        """Something that the machine decides, such as a time: shown, never failed."""
        self.notes.append(text)

    def report(self):
        """Prints one PASS or FAIL line each; the exit status."""
        for text in self.notes:
            print("TIME  " + text)
        for holds, text in self.results:
            print(("PASS  " if holds else "FAIL  ") + text)
        failed = sum(not holds for holds, _ in self.results)
        print(f"{len(self.results) - failed} passed, {failed} failed")
        return 1 if failed else 0
