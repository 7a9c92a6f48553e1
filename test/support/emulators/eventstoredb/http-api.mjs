import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { parseCredentials } from './access.mjs';

/**
 * Serves the parts of the HTTP API that clients and operators use. Everything else is 404.
 * @param {Record<string, string>} users name to password; new ones are added
 * @param {import('./members.mjs').Members} members
 * @param {import('./members.mjs').Member} self
 */
export function createHttpApi(users, members, self) {
  return createServer(async (request, response) => {
    const respond = (status, body, headers = {}) => {
      response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers });
      response.end(JSON.stringify(body));
    };
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    if (request.method === 'GET') {
      if (pathname === '/gossip') return respond(200, toGossip(members, self));
      // Says nothing about a leader, as on the real server.
      if (pathname === '/health/live') {
        response.writeHead(Number(searchParams.get('liveCode') ?? 204)).end();
        return;
      }
    }
    if (request.method === 'POST' && pathname === '/users/') {
      return createUser(users, request, respond);
    }
    const [, name] = /^\/users\/([^/]+)\/command\/reset-password$/.exec(pathname) ?? [];
    if (request.method === 'POST' && name !== undefined) {
      return resetPassword(users, decodeURIComponent(name), request, respond);
    }
    return respond(404, {});
  });
}

function toGossip(members, self) {
  return {
    members: members.list.map((member) => ({
      instanceId: member.id,
      timeStamp: new Date().toISOString(),
      state: members.getState(member),
      isAlive: member.isAlive,
      httpEndPointIp: member.host,
      httpEndPointPort: member.port,
      isReadOnlyReplica: false,
    })),
    serverIp: self.host,
    serverPort: self.port,
  };
}

/**
 * Responds with 201 for a new user, and for a known one with the same password; with 409 for a known one with another
 * password, and with 401 to everybody but administrators.
 */
async function createUser(users, request, respond) {
  if (!isAdmin(users, request)) return refuse(respond);
  if (request.headers['content-type'] !== 'application/json') return respond(415, {});
  const { loginName, fullName, password } = await json(request);
  if (!loginName || !fullName || !password) return respond(400, {});
  if (Object.hasOwn(users, loginName) && users[loginName] !== password) {
    return respond(409, { loginName, success: false, error: 'Conflict' });
  }
  users[loginName] = password;
  const location = `https://${request.headers.host}/users/${encodeURIComponent(loginName)}`;
  return respond(201, { loginName, success: true, error: 'Success' }, { location });
}

/** Calls that are open go on as they began; the next one needs the new password. */
async function resetPassword(users, name, request, respond) {
  if (!isAdmin(users, request)) return refuse(respond);
  const { newPassword } = await json(request);
  if (!Object.hasOwn(users, name)) {
    return respond(404, { loginName: name, success: false, error: 'NotFound' });
  }
  users[name] = newPassword;
  return respond(200, { loginName: name, success: true, error: 'Success' });
}

function isAdmin(users, request) {
  const caller = parseCredentials(request.headers.authorization);
  return caller !== null && caller.name === 'admin' && users['admin'] === caller.password;
}

function refuse(respond) {
  return respond(401, {}, { 'www-authenticate': 'Basic realm="ESDB"' });
}
