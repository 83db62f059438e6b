"""Stand-ins for what this branch does not have yet."""

import fakes

fakes.install()
