import { Injectable } from '@nestjs/common';
import { Sessions } from '#identity/sessions.service.js';
import { Stores } from './stores.service.js';

/** Decides where people start who have just signed in. */
@Injectable()
export class StartPaths {
  constructor(
    private readonly sessions: Sessions,
    private readonly stores: Stores,
  ) {}

  /**
   * Finds the page to open after signing in, unless they came for another one: for those who are only staff the counter,
   * and for those with one store its overview.
   * @param session the token of the new session
   */
  async find(session: string, returnTo: string): Promise<string> {
    if (returnTo !== '/app') return returnTo;
    const signedIn = await this.sessions.find(session);
    const stores = signedIn ? await this.stores.listForUser(signedIn.userId) : [];
    const [first, ...others] = stores;
    if (!first) return returnTo;
    if (stores.every(({ role }) => role === 'staff')) return '/counter';
    return others.length === 0 ? `/app/stores/${first.id}` : returnTo;
  }
}
