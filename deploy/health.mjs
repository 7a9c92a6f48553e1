/** The health check of the image, for whichever of the two processes runs in this container. */
const ports = [process.env.PORT || 3000, process.env.HEALTH_PORT || 9466];

const responses = await Promise.allSettled(
  ports.map((port) =>
    fetch(`http://127.0.0.1:${port}/health/live`, { signal: AbortSignal.timeout(4_000) }),
  ),
);
process.exitCode = responses.some(({ value }) => value?.ok) ? 0 : 1;
