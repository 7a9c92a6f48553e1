import { Agent, fetch, type RequestInit, type Response } from 'undici';
import { createCheckedBody } from './checked-body.client.js';

const agent = new Agent();

/**
 * Fetches, unless the body went out of date before it was written.
 * @throws TypeError when no response comes, also because nothing was sent
 */
export function fetchChecked(
  url: string,
  request: RequestInit,
  mayBeSent: () => boolean,
): Promise<Response> {
  const dispatcher = agent.compose((dispatch) => (options, handler) => {
    const { body } = options;
    // `fetch` turns every body into an async iterable, and sends its length in a header.
    const isIterable = typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
    return dispatch(
      isIterable ? { ...options, body: createCheckedBody(body, mayBeSent) } : options,
      handler,
    );
  });
  return fetch(url, { ...request, dispatcher });
}
