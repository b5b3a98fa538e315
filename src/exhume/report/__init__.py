"""The report: one HTML file about groups, from the tables that the commands show.

request      the groups, the time range and the facts besides the logs
gather       ask the topic for each table once
lanes        owners over time as bars, with few enough bars for a browser
positions    committed offsets over time as points, with few enough points
marks        rebalances as marks
page         the tables as HTML, with a policy that lets nothing but its own script and style run
pictures     a single picture: swimlanes or assignments as SVG
"""

from __future__ import annotations

from exhume.report.gather import gather
from exhume.report.page import page
from exhume.report.request import ReportRequest

__all__ = ["ReportRequest", "gather", "page"]
