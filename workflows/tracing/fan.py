"""Several sinks as one."""

from collections.abc import Callable

import structlog

from workflows.tracing.base import RunningSink, Span, SpanSink, WatchingSink


class Fan:
    """Hands each span to every sink, and its own life to those that have one. One that fails costs the others nothing."""

    def __init__(self, *sinks: SpanSink) -> None:
        self._sinks = sinks
        self._watching = tuple(sink for sink in sinks if isinstance(sink, WatchingSink))
        self._running = tuple(sink for sink in sinks if isinstance(sink, RunningSink))

    @property
    def narrowed(self) -> SpanSink:
        """The one sink where there is but one: spans pass here ten times in a turn."""
        return self._sinks[0] if len(self._sinks) == 1 else self

    def put(self, span: Span) -> None:
        for sink in self._sinks:
            self._guarded(sink.put, span)

    def began(self, span: Span) -> None:
        for sink in self._watching:
            self._guarded(sink.began, span)

    def start(self) -> None:
        for sink in self._running:
            sink.start()

    async def close(self) -> None:
        for sink in self._running:
            try:
                await sink.close()
            except Exception as error:
                structlog.get_logger().error("span_sink_not_closed", sink=type(sink).__name__, error=repr(error))

    @staticmethod
    def _guarded(take: Callable[[Span], None], span: Span) -> None:
        try:
            take(span)
        except Exception as error:
            structlog.get_logger().error("span_not_taken", name=span.name, error=repr(error))
