import { Injectable, Logger } from '@nestjs/common';
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  clockSkew,
  customFetch,
  discovery,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  type Configuration,
  type CustomFetch,
} from 'openid-client';
import type { RequestInit } from 'undici';
import { Config } from '#configuration/config.js';
import { clock } from '#kernel/clock.js';
import { getMessageWithCause } from '#kernel/errors.js';
import { MasterKeys } from '#database/master-keys.js';
import { OutboundHttp } from '#sending/outbound-http.client.js';
import type { CompanyPerson } from '#identity/company-sign-ins.service.js';
import { PageError } from '#pages/page-error.js';
import type { SignInTexts } from '#translations/sign-in/en.js';

const TIMEOUT_SECONDS = 10;
/** The library tolerates 30 s. */
const MAX_CLOCK_CHANGE_SECONDS = 5;
const PURPOSE = 'company sign-in';
export const CALLBACK_PATH = '/app/sign-in/company/done';

/** The state of a sign-in that is under way, sealed in a cookie. */
type PendingSignIn = { state: string; nonce: string; verifier: string; returnTo: string };

type CompanyTexts = SignInTexts['company'];

export type VerifiedSignIn = { person: CompanyPerson; returnTo: string };

/** Signs in with a company's identity provider: OpenID Connect, code flow with PKCE, state and nonce. */
@Injectable()
export class IdentityProvider {
  private readonly log = new Logger('company sign-in');
  private configuration: Promise<Configuration> | undefined;
  private readonly http: OutboundHttp;
  /** By how many seconds the clock of this machine was behind when the provider was discovered. */
  private skewSeconds = 0;

  constructor(
    private readonly config: Config,
    private readonly keys: MasterKeys,
  ) {
    this.http = new OutboundHttp(config.outboundProxy);
  }

  get isConfigured(): boolean {
    return this.config.oidc !== null;
  }

  /** Starts a sign-in. @returns the provider's URL and the sealed state for a cookie @throws PageError */
  async begin(returnTo: string, t: CompanyTexts): Promise<{ url: string; sealed: string }> {
    const pending: PendingSignIn = {
      state: randomState(),
      nonce: randomNonce(),
      verifier: randomPKCECodeVerifier(),
      returnTo,
    };
    const url = buildAuthorizationUrl(await this.getProvider(t), {
      redirect_uri: this.config.publicUrl + CALLBACK_PATH,
      scope: 'openid email profile',
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await calculatePKCECodeChallenge(pending.verifier),
      code_challenge_method: 'S256',
    });
    const sealed = this.keys.seal(PURPOSE, Buffer.from(JSON.stringify(pending)), PURPOSE);
    return { url: url.href, sealed: sealed.toString('base64url') };
  }

  /** Verifies the provider's response. @param query of its redirect @throws PageError */
  async finish(
    query: string,
    sealed: string | undefined,
    t: CompanyTexts,
  ): Promise<VerifiedSignIn> {
    const pending = sealed === undefined ? undefined : this.unseal(sealed);
    if (!pending) throw createRefusal(t.late, t);
    const configuration = await this.getProvider(t);
    try {
      const url = new URL(`${this.config.publicUrl}${CALLBACK_PATH}${query}`);
      const tokens = await authorizationCodeGrant(configuration, url, {
        expectedState: pending.state,
        expectedNonce: pending.nonce,
        pkceCodeVerifier: pending.verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (!claims) throw new Error('there is no ID token');
      const profile =
        typeof claims['email'] === 'string'
          ? claims
          : await fetchUserInfo(configuration, tokens.access_token, claims.sub);
      const { email, email_verified } = profile;
      const isConfirmed = typeof email === 'string' && email_verified === true;
      return {
        person: {
          issuer: claims.iss,
          subject: claims.sub,
          email: isConfirmed ? email : null,
        },
        returnTo: pending.returnTo,
      };
    } catch (error) {
      this.log.warn(`a sign-in was refused: ${getMessageWithCause(error)}`);
      throw createRefusal(t.refused, t);
    }
  }

  /**
   * Discovers the provider at first use, and again after a failure or when the clock of this machine has changed: the
   * library compares the provider's times with that one.
   */
  private async getProvider(t: CompanyTexts): Promise<Configuration> {
    const skewSeconds = -clock.getMachineOffsetMs() / 1_000;
    if (Math.abs(skewSeconds - this.skewSeconds) > MAX_CLOCK_CHANGE_SECONDS) {
      this.configuration = undefined;
      this.skewSeconds = skewSeconds;
    }
    this.configuration ??= this.discover();
    try {
      return await this.configuration;
    } catch (error) {
      this.configuration = undefined;
      this.log.warn(`OIDC_ISSUER cannot be used: ${getMessageWithCause(error)}`);
      throw new PageError(503, t.unreachable, t.unreachableWhy);
    }
  }

  // The types of undici and of Node.js differ, the objects do not.
  private readonly fetch: CustomFetch = async (url, request) =>
    (await this.http.fetch(url, request as RequestInit)) as unknown as Response;

  private async discover(): Promise<Configuration> {
    const { oidc } = this.config;
    if (!oidc) throw new Error('OIDC_ISSUER is not set');
    const issuer = new URL(oidc.issuer);
    const client = {
      ...(oidc.clientSecret !== null && { client_secret: oidc.clientSecret }),
      [clockSkew]: Math.round(this.skewSeconds),
    };
    return discovery(issuer, oidc.clientId, client, undefined, {
      timeout: TIMEOUT_SECONDS,
      [customFetch]: this.fetch,
      // Only for a provider on this machine (OIDC_ISSUER).
      ...(issuer.protocol === 'http:' && { execute: [allowInsecureRequests] }),
    });
  }

  private unseal(sealed: string): PendingSignIn | undefined {
    try {
      const bytes = Buffer.from(sealed, 'base64url');
      return JSON.parse(this.keys.open(PURPOSE, bytes, PURPOSE).toString()) as PendingSignIn;
    } catch {
      // Anybody can send anything as a cookie.
      return undefined;
    }
  }
}

/** Creates the page of a failed sign-in. */
export function createRefusal(reason: string, t: CompanyTexts): PageError {
  return new PageError(403, t.notSignedIn, `${reason} ${t.tryAgain}`);
}
