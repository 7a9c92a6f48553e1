import { Apns } from './apns.mjs';
import { appleCertificates, type AppleCertificates } from './certificates.mjs';
import { Phone } from './phone.mjs';

/** Apple as a service under test meets it. */
export type AppleWorld = {
  certificates: AppleCertificates;
  apns: Apns;
  /** Of both processes. */
  settings: NodeJS.ProcessEnv;
  /** @param baseUrl where the service listens, whatever its public URL is */
  phone: (baseUrl: string) => Phone;
};

export async function appleWorld(): Promise<AppleWorld> {
  const certificates = appleCertificates();
  const apns = await Apns.start(certificates);
  return {
    certificates,
    apns,
    settings: {
      PUBLIC_URL: 'https://cards.example',
      APPLE_PASS_CERT: certificates.pass.certificate,
      APPLE_PASS_KEY: certificates.pass.key,
      APPLE_WWDR_CERT: certificates.wwdr,
      APNS_URL: apns.url,
      APNS_CA_CERT: certificates.root,
    },
    phone: (baseUrl) =>
      new Phone({
        root: certificates.root,
        apns,
        reaches: (url) => url.replace('https://cards.example', baseUrl),
      }),
  };
}
