import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';

type CookieOptions = {
  /** Undefined: until the browser is closed. */
  maxAgeSeconds?: number;
};

/**
 * Reads and sets the cookies of one installation. Over https they carry the prefix `__Host-`, so that nobody on a
 * neighbouring host can plant one (RFC 6265bis, section 4.1.3.2).
 */
export class Cookies {
  private readonly secure: boolean;

  constructor(publicUrl: string) {
    this.secure = publicUrl.startsWith('https:');
  }

  read(request: FastifyRequest, name: string): string | undefined {
    const { cookie } = request.headers;
    return cookie === undefined ? undefined : parseCookie(cookie)[this.toCookieName(name)];
  }

  /** Lists the names that begin with a text. Browsers send the cookies of a path in the order in which they were set. */
  listNames({ headers: { cookie } }: FastifyRequest, prefix: string): string[] {
    if (cookie === undefined) return [];
    const skipped = this.toCookieName('').length;
    return Object.keys(parseCookie(cookie))
      .filter((name) => name.startsWith(this.toCookieName(prefix)))
      .map((name) => name.slice(skipped));
  }

  set(reply: FastifyReply, name: string, value: string, options: CookieOptions = {}): void {
    this.write(reply, name, value, options.maxAgeSeconds);
  }

  remove(reply: FastifyReply, name: string): void {
    this.write(reply, name, '', 0);
  }

  private write(reply: FastifyReply, name: string, value: string, maxAge?: number): void {
    const cookie = stringifySetCookie(this.toCookieName(name), value, {
      path: '/',
      httpOnly: true,
      sameSite: 'lax',
      secure: this.secure,
      ...(maxAge !== undefined && { maxAge }),
    });
    // Fastify sends several headers of this name.
    reply.header('set-cookie', cookie);
  }

  private toCookieName(name: string): string {
    return this.secure ? `__Host-${name}` : name;
  }
}
