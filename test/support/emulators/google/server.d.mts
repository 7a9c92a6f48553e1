export type GoogleWalletOptions = {
  /** 0, the default: any that is free. */
  port?: number;
  /** In its URLs. */
  host?: string;
  /** The number of the issuer account. */
  issuerId?: string;
  /** Default 20. */
  requestsPerSecond?: number;
  /** Images and callbacks may have http addresses, as no real Google takes them. */
  allowHttp?: boolean;
  /** Milliseconds since 1970, for token lifetimes and daily quotas. */
  now?: () => number;
  /** Of the service account, in PEM. */
  key?: { publicKey: string; privateKey: string };
};

export type GoogleRequest = {
  method: string;
  /** After the base, decoded nowhere. */
  path: string;
  body: Record<string, unknown>;
  at: number;
};

export type GoogleNotification = {
  kind: 'update' | 'message';
  objectId: string;
  /** The balance, or the body of the message. */
  text: string;
  at: number;
  /** Somebody has the object on a phone. */
  seen: boolean;
};

export type GoogleRecord = Record<string, unknown> & { id: string };

export type CallbackEvent = {
  classId: string;
  objectId: string;
  eventType: 'save' | 'del';
  nonce?: string;
  expTimeMillis?: number;
};

export type WrongEnvelope = {
  recipientId?: string;
  senderId?: string;
  keyExpiration?: number;
  /** The intermediate key is signed by a key that is not published. */
  rootless?: boolean;
  protocolVersion?: string;
};

export type GoogleFault = {
  status?: number;
  reason?: string;
  headers?: Record<string, string>;
  /** The request takes effect first. */
  afterwards?: boolean;
  /** Only requests whose path contains this. */
  on?: string;
};

export type GoogleWallet = {
  readonly issuerId: string;
  readonly origin: string;
  readonly tokenUrl: string;
  readonly saveUrl: string;
  /** Settings of a service that uses this server. */
  readonly environment: Record<string, string>;
  readonly account: { email: string; keyId: string; publicKey: string; privateKey: string };
  readonly classes: Map<string, GoogleRecord>;
  readonly objects: Map<string, GoogleRecord>;
  readonly saved: Set<string>;
  readonly notifications: GoogleNotification[];
  /** REST requests that were admitted. */
  readonly requests: GoogleRequest[];
  readonly writes: GoogleRequest[];
  readonly tokenRequests: number;
  readonly signer: { rotate(): void };
  /** The next REST requests fail. */
  fail(count: number, fault?: GoogleFault): void;
  /** While held, requests get no response; afterwards their connections are cut. */
  hold(held: boolean): void;
  /** Access tokens given so far are no longer taken. */
  expireTokens(): void;
  /** Cuts every connection and refuses new ones. */
  stopListening(): Promise<void>;
  /** On the same port. */
  listenAgain(): Promise<void>;
  stop(): Promise<void>;
  /** Saves a pass by its link, as a user's phone does. */
  save(link: string): Promise<Response>;
  /** The signed body of a callback. */
  envelope(event: CallbackEvent, wrong?: WrongEnvelope): string;
};

export function startGoogleWallet(options?: GoogleWalletOptions): Promise<GoogleWallet>;
