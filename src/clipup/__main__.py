"""``python -m clipup`` is the command ``clipup``."""

from clipup.cli import main

raise SystemExit(main())
