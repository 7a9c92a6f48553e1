/** Requests and responses of the running test, for the report of a failure. */

const MAX_EXCHANGES = 2;
const MAX_TEXT = 2_000;

/** @typedef {{ method: string, path: string, body: unknown, status: number, text: string }} Exchange */

/** @type {Exchange[]} */
let exchanges = [];

/** @param {Exchange} exchange */
export function rememberExchange(exchange) {
  exchanges = [...exchanges.slice(1 - MAX_EXCHANGES), exchange];
}

export function forgetExchanges() {
  exchanges = [];
}

/** Describes the last requests and their responses, without the token that they were sent with. */
export function describeExchanges() {
  return exchanges
    .map(({ method, path, body, status, text }) => {
      const sent = typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body);
      return `${method} ${path} ${shorten(sent ?? '')}\n→ ${status} ${shorten(text)}`;
    })
    .join('\n');
}

/** @param {string} text */
function shorten(text) {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)} … (${text.length} characters)` : text;
}
