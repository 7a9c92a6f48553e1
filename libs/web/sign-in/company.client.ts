import { Injectable, Logger } from '@nestjs/common';
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  AuthorizationResponseError,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  ClientSecretPost,
  clockSkew,
  customFetch,
  discovery,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  ResponseBodyError,
  skipSubjectCheck,
  WWWAuthenticateChallengeError,
  type ClientAuth,
  type Configuration,
  type CustomFetch,
  type IDToken,
  type UserInfoResponse,
} from 'openid-client';
import type { RequestInit } from 'undici';
import { Config } from '#configuration/config.js';
import { clock } from '#platform/kernel/clock.js';
import { getMessageWithCause } from '#platform/kernel/errors.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { OutboundHttp } from '#outbound/sending/outbound-http.client.js';
import type { CompanyPerson } from '#identity/company-sign-ins.service.js';
import { PageError } from '#web/pages/page-error.js';
import type { Translations } from '#translations/translations.js';

const TIMEOUT_SECONDS = 10;
/** For a response that could change little. */
const OPTIONAL_TIMEOUT_SECONDS = 3;
/** The library tolerates 30 s. */
const MAX_CLOCK_CHANGE_SECONDS = 5;
const PURPOSE = 'company sign-in';
export const CALLBACK_PATH = '/app/sign-in/company/done';

/** The state of a sign-in that is under way, sealed in a cookie. */
type PendingSignIn = { state: string; nonce: string; verifier: string; returnTo: string };

type CompanyTexts = Translations['signIn']['company'];

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

  /** Starts a sign-in. @returns the provider's URL, and the sealed state for a cookie of its own @throws PageError */
  async begin(
    returnTo: string,
    t: CompanyTexts,
  ): Promise<{ url: string; state: string; sealed: string }> {
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
    return { url: url.href, state: pending.state, sealed: sealed.toString('base64url') };
  }

  /** Verifies the provider's response. @param query of its redirect @throws PageError */
  async finish(
    query: string,
    sealed: string | undefined,
    t: CompanyTexts,
  ): Promise<VerifiedSignIn> {
    const pending = sealed === undefined ? undefined : this.unseal(sealed);
    if (!pending) throw createSignInError(t.late, t);
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
      const profile = await this.completeClaims(configuration, claims, tokens.access_token);
      return {
        person: {
          issuer: claims.iss,
          subject: claims.sub,
          email: this.findEmail(profile),
          hasSecondFactor: hasSecondFactor(claims),
        },
        returnTo: pending.returnTo,
      };
    } catch (error) {
      this.log.warn(`a sign-in was refused: ${await describeError(error)}`);
      throw createSignInError(t.refused, t);
    }
  }

  /**
   * Adds the claims of UserInfo, where providers may put any of them (OpenID Connect Core 1.0, section 5.4), when the ID
   * token lacks some. Those of UserInfo win, so that `email_verified` is about the address that is next to it. Without a
   * response the ID token has to be enough: an account that is linked to the person needs no address.
   * @throws Error when UserInfo is about another person, or says nobody (section 5.3.2)
   */
  private async completeClaims(
    configuration: Configuration,
    claims: IDToken,
    accessToken: string,
  ): Promise<IDToken | UserInfoResponse> {
    const hasAddress = typeof claims['email'] === 'string';
    const isComplete = hasAddress && (claims['email_verified'] ?? null) !== null;
    if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
    // Where the operator vouches for addresses, it could only deny this one.
    const isEnough = hasAddress && this.config.oidc?.areEmailsConfirmed === true;
    const userInfo = await this.findUserInfo(configuration, accessToken, isEnough);
    if (!userInfo) return claims;
    if (userInfo.sub !== claims.sub) throw new Error('UserInfo is about another person');
    return { ...claims, ...userInfo };
  }

  /** @param isEnough whether the ID token says enough already, so that nobody waits for long */
  private async findUserInfo(
    configuration: Configuration,
    accessToken: string,
    isEnough: boolean,
  ): Promise<UserInfoResponse | undefined> {
    const seconds = isEnough ? OPTIONAL_TIMEOUT_SECONDS : TIMEOUT_SECONDS;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      const error = new Error(`no response within ${seconds} s`);
      timer = setTimeout(reject, seconds * 1_000, error);
    });
    try {
      const response = fetchUserInfo(configuration, accessToken, skipSubjectCheck);
      return await Promise.race([response, timeout]);
    } catch (error) {
      if (hasClaims(error)) throw error;
      this.log.warn(
        `UserInfo of the provider failed, and a sign-in goes on without it: ${await describeError(error)}`,
      );
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Finds the address that the provider has confirmed, or the operator in place of a provider that never says so. */
  private findEmail({ email, email_verified }: IDToken | UserInfoResponse): string | null {
    const isVerified = email_verified ?? this.config.oidc?.areEmailsConfirmed;
    // Some providers send a text, Amazon Cognito and Apple among them.
    const isConfirmed = isVerified === true || (isVerified as unknown) === 'true';
    return isConfirmed && typeof email === 'string' ? email : null;
  }

  /**
   * Discovers the provider at first use, and again after a failure or when the clock of this machine has changed: the
   * library compares the provider's times with this clock.
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
      this.log.warn(`OIDC_ISSUER cannot be used: ${await describeError(error)}`);
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
    const client = { [clockSkew]: Math.round(this.skewSeconds) };
    const clientAuth = oidc.clientSecret === null ? undefined : createClientAuth(oidc.clientSecret);
    return discovery(issuer, oidc.clientId, client, clientAuth, {
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

/** Tells whether the provider says that it has asked for several factors (RFC 8176, section 2). */
function hasSecondFactor({ amr }: IDToken): boolean {
  return Array.isArray(amr) && amr.includes('mfa');
}

/**
 * Creates the authentication of the client: `client_secret_basic`, which is the default (OpenID Connect Discovery 1.0,
 * section 3), unless the provider names only `client_secret_post` of the two.
 */
function createClientAuth(secret: string): ClientAuth {
  const authenticateByPost = ClientSecretPost(secret);
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? [];
    if (methods.includes('client_secret_post') && !methods.includes('client_secret_basic'))
      return authenticateByPost(server, client, body, headers);
    // RFC 6749, section 2.3.1. That of the library escapes "-", "." and "_" too, which some providers do not undo.
    const credentials = [client.client_id, secret].map(encodeFormValue).join(':');
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`);
  };
}

function encodeFormValue(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}

/** RFC 6749, section 5.2: the characters of an error code. Descriptions may hold anything, so no log has them. */
const ERROR_CODE = /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,64}$/;

/** Describes a failure with the provider's error code, such as `invalid_client`, and the status of its response. */
async function describeError(error: unknown): Promise<string> {
  const response = findResponse(error);
  const code =
    error instanceof ResponseBodyError || error instanceof AuthorizationResponseError
      ? error.error
      : response && (await readErrorCode(response));
  return [
    ...(code !== undefined && ERROR_CODE.test(code) ? [code] : []),
    ...(response ? [`status ${response.status}`] : []),
    getMessageWithCause(error),
  ].join(', ');
}

/** Finds the provider's response that an error of the library is about. */
function findResponse(error: unknown): Response | undefined {
  if (error instanceof ResponseBodyError || error instanceof WWWAuthenticateChallengeError)
    return error.response;
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Object && 'status' in cause && 'json' in cause
    ? (cause as Response)
    : undefined;
}

/** Tells whether an error is about the claims of a response, such as a missing `sub`, and not about getting one. */
function hasClaims(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return (
    (cause instanceof Object && 'body' in cause && !('status' in cause)) ||
    (cause instanceof Error && hasClaims(cause))
  );
}

/** Reads the code of a response that the library has rejected by its header or status alone. */
async function readErrorCode(response: Response): Promise<string | undefined> {
  try {
    const body: unknown = response.bodyUsed ? null : await response.json();
    return body instanceof Object && 'error' in body ? String(body.error) : undefined;
  } catch {
    return undefined;
  }
}

/** Creates the page of a failed sign-in. */
export function createSignInError(reason: string, t: CompanyTexts): PageError {
  return new PageError(403, t.notSignedIn, `${reason} ${t.tryAgain}`);
}
