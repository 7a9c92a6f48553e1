import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { parseCredentials } from './access.mjs';

/**
 * `/info` of the HTTP API, and `POST /users/`: 201 for a new user, and for a known one with the same password; 409 for a known one
 * with another password; 401 for everybody but administrators. Nothing else is answered.
 * @param {Record<string, string>} users name to password; new ones are added
 * @param {string} version
 */
export function httpApi(users, version) {
  return createServer(async (request, response) => {
    const respond = (status, headers, body) => {
      response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers });
      response.end(JSON.stringify(body));
    };
    if (request.url === '/info') {
      const name = Number.parseInt(version, 10) >= 25 ? 'dbVersion' : 'esVersion';
      return respond(200, {}, { [name]: version, state: 'leader', features: {} });
    }
    if (request.method !== 'POST' || request.url !== '/users/') return respond(404, {}, {});
    const caller = parseCredentials(request.headers.authorization);
    if (caller === null || caller.name !== 'admin' || users['admin'] !== caller.password) {
      return respond(401, { 'www-authenticate': 'Basic realm="ESDB"' }, {});
    }
    if (request.headers['content-type'] !== 'application/json') return respond(415, {}, {});
    const { loginName, fullName, password } = await json(request);
    if (!loginName || !fullName || !password) return respond(400, {}, {});
    if (Object.hasOwn(users, loginName) && users[loginName] !== password) {
      return respond(409, {}, { loginName, success: false, error: 'Conflict' });
    }
    users[loginName] = password;
    const location = `https://${request.headers.host}/users/${encodeURIComponent(loginName)}`;
    return respond(201, { location }, { loginName, success: true, error: 'Success' });
  });
}
