export const TEAM: string;
export const PASS_TYPE: string;

export type AppleCertificates = {
  root: string;
  wwdr: string;
  pass: { certificate: string; key: string };
  server: { certificate: string; key: string };
};

export function appleCertificates(about?: {
  team?: string;
  passType?: string;
  days?: number;
}): AppleCertificates;
