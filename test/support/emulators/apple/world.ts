import { Apns } from './apns.mjs';
import { appleCertificates, type AppleCertificates } from './certificates.mjs';
import { Phone } from './phone.mjs';

/** Apple as a service under test meets it. */
export type AppleWorld = {
  made: AppleCertificates;
  apns: Apns;
  /** Of both processes. */
  settings: NodeJS.ProcessEnv;
  /** @param baseUrl where the service listens, whatever its public URL is */
  phone: (baseUrl: string) => Phone;
};

export async function appleWorld(): Promise<AppleWorld> {
  const made = appleCertificates();
  const apns = await Apns.start(made);
  return {
    made,
    apns,
    settings: {
      PUBLIC_URL: 'https://cards.example',
      APPLE_PASS_CERT: made.pass.certificate,
      APPLE_PASS_KEY: made.pass.key,
      APPLE_WWDR_CERT: made.wwdr,
      APNS_URL: apns.url,
      APNS_CA_CERT: made.root,
    },
    phone: (baseUrl) =>
      new Phone({
        root: made.root,
        apns,
        reaches: (url) => url.replace('https://cards.example', baseUrl),
      }),
  };
}
