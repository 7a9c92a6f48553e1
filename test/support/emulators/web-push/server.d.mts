export type PushMessage = {
  text: string;
  /** The media type of what is encrypted. */
  type: string | undefined;
  ttl: number;
  topic: string | undefined;
  urgency: string | undefined;
};

export type SubscribedBrowser = {
  subscription: {
    endpoint: string;
    expirationTime: null;
    keys: { p256dh: string; auth: string };
  };
  messages: PushMessage[];
  end: () => void;
};

export type PushService = {
  origin: string;
  rejections: { status: number; why: string }[];
  subscribe: (applicationServerKey: string) => SubscribedBrowser;
  respondWith: (
    reply: (() => { status: number; headers?: Record<string, string> } | undefined) | undefined,
  ) => void;
  stop: () => Promise<void>;
};

export function startPushService(): Promise<PushService>;
