/**
 * Responds to requests of pages that workers have stored. A network may accept connections and never respond, or send the
 * head of a response and then nothing: a cellar, a train, a Wi-Fi that waits for somebody to sign in. Without a connection
 * browsers say so at once; here nobody does.
 */
const PATIENCE_MS = 2500;
const SILENCE_MS = 10000;
/** Until when the files of a page are not waited for, because the page itself has waited in vain. */
let silentUntil = 0;

/**
 * Returns the response of the network, or what is stored if the network fails, or has not sent all of it in time.
 * @param find the stored response, or undefined
 * @param keep gets the response of the network with its body, however late, to store it
 * @param onLate gets the same when what is stored was shown before
 */
globalThis.respondInTime = async (event, { find, keep, onLate, patienceMs = PATIENCE_MS }) => {
  const response = fetch(event.request);
  const whole = response.then(readWhole);
  // The storage is no part of the response: without it, the page comes from the network alone.
  const logFailure = (error) => console.debug(error);
  const kept = whole.then(({ response, body }) => keep(response, body));
  event.waitUntil(kept.catch(logFailure));
  const stored = await within(PATIENCE_MS, find().catch(logFailure));
  if (!stored) return response;
  const ms = silentUntil > Date.now() && event.request.mode !== 'navigate' ? 0 : patienceMs;
  const inTime = await within(
    ms,
    whole.catch((error) => ({ error })),
  );
  if (!inTime) {
    silentUntil = Date.now() + SILENCE_MS;
    const isKept = kept.catch(logFailure);
    if (onLate)
      event.waitUntil(
        isKept
          .then(() => whole)
          .then(onLate)
          .catch(logFailure),
      );
    return stored;
  }
  if (inTime.error) return stored;
  silentUntil = 0;
  return inTime.response.status < 500 ? inTime.response : stored;
};

/** Reads a response to its end. It can still be returned. */
async function readWhole(response) {
  return { response, body: await response.clone().arrayBuffer() };
}

/** Waits no longer than so many milliseconds. @returns undefined when it took longer; Infinity waits */
function within(ms, promise) {
  if (ms === Infinity) return promise;
  return Promise.race([promise, new Promise((resolve) => setTimeout(resolve, ms))]);
}

/**
 * Fetches the files that are not stored yet, whole, so that a page is stored with all of its files or not at all. Nobody
 * waits for it; a network that says nothing ends it.
 * @returns each with its URL
 */
globalThis.fetchMissing = async (cache, urls, options) => {
  const files = [];
  for (const url of urls) {
    if (await cache.match(url, options)) continue;
    const response = await fetch(url, { signal: AbortSignal.timeout(SILENCE_MS * 3) });
    if (!response.ok) throw new Error(`${url}: ${response.status}`);
    files.push([url, new Response(await response.arrayBuffer(), response)]);
  }
  return files;
};
