import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#kernel/config.js';
import { readSource, type GatedRequest } from '#http/caller.js';
import { SESSION_COOKIE, SESSION_SECONDS } from '#identity/sessions.service.js';
import type { SignedInAnew, Visitor } from '#identity/sign-ins.service.js';
import { Cookies } from '#pages/cookies.js';

/** Names the browser for a year, so that failures of others do not count against it. */
const BROWSER_COOKIE = 'inkpad-browser';
const BROWSER_SECONDS = 365 * 24 * 60 * 60;
const CODE_SECONDS = 10 * 60;

/** The cookies of those who come and go. */
@Injectable()
export class Doors {
  private readonly cookies: Cookies;

  constructor(config: Config) {
    this.cookies = new Cookies(config.publicUrl);
  }

  visitorOf(request: FastifyRequest): Visitor {
    const browser = this.cookies.read(request, BROWSER_COOKIE);
    const session = this.cookies.read(request, SESSION_COOKIE);
    return {
      ...readSource(request as GatedRequest),
      ...(browser !== undefined && { browser }),
      ...(session !== undefined && { session }),
    };
  }

  letIn(reply: FastifyReply, { session, browser }: SignedInAnew): void {
    this.renew(reply, session);
    this.remember(reply, browser);
  }

  /** The same session with another token. */
  renew(reply: FastifyReply, session: string): void {
    this.cookies.set(reply, SESSION_COOKIE, session, { maxAgeSeconds: SESSION_SECONDS });
  }

  remember(reply: FastifyReply, browser: string): void {
    this.cookies.set(reply, BROWSER_COOKIE, browser, { maxAgeSeconds: BROWSER_SECONDS });
  }

  letWait(reply: FastifyReply, session: string): void {
    this.cookies.set(reply, SESSION_COOKIE, session, { maxAgeSeconds: CODE_SECONDS });
  }

  letOut(reply: FastifyReply): void {
    this.cookies.remove(reply, SESSION_COOKIE);
  }
}
