import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { readSource, type AuthenticatedRequest } from '#platform/http/caller.js';
import { SESSION_COOKIE, SESSION_SECONDS } from '#identity/sessions.service.js';
import type { NewSession, Visitor } from '#identity/sign-ins.service.js';
import { Cookies } from '#web/pages/cookies.js';

/** Identifies a trusted browser for a year: failures elsewhere do not block it. */
const BROWSER_COOKIE = 'inkpad-browser';
const BROWSER_SECONDS = 365 * 24 * 60 * 60;
const PENDING_SECONDS = 10 * 60;

/** Reads and sets the session and trusted-browser cookies. */
@Injectable()
export class SessionCookies {
  private readonly cookies: Cookies;

  constructor(config: Config) {
    this.cookies = new Cookies(config.publicUrl);
  }

  readVisitor(request: FastifyRequest): Visitor {
    const browser = this.cookies.read(request, BROWSER_COOKIE);
    const session = this.cookies.read(request, SESSION_COOKIE);
    const userAgent = request.headers['user-agent'];
    return {
      ...readSource(request as AuthenticatedRequest),
      ...(userAgent !== undefined && { userAgent }),
      ...(browser !== undefined && { browser }),
      ...(session !== undefined && { session }),
    };
  }

  set(reply: FastifyReply, { session, browser }: NewSession): void {
    this.setSession(reply, session);
    this.setTrustedBrowser(reply, browser);
  }

  /** Sets the token of the session. */
  setSession(reply: FastifyReply, session: string): void {
    this.cookies.set(reply, SESSION_COOKIE, session, { maxAgeSeconds: SESSION_SECONDS });
  }

  setTrustedBrowser(reply: FastifyReply, browser: string): void {
    this.cookies.set(reply, BROWSER_COOKIE, browser, { maxAgeSeconds: BROWSER_SECONDS });
  }

  setPending(reply: FastifyReply, session: string): void {
    this.cookies.set(reply, SESSION_COOKIE, session, { maxAgeSeconds: PENDING_SECONDS });
  }

  clear(reply: FastifyReply): void {
    this.cookies.remove(reply, SESSION_COOKIE);
  }
}
