export type Exchange = {
  method: string;
  path: string;
  body: unknown;
  status: number;
  text: string;
};

export function rememberExchange(exchange: Exchange): void;
export function forgetExchanges(): void;
export function describeExchanges(): string;
