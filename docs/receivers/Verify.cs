// Verifies Inkpad's webhooks in C#, with the secret of a subscription (whsec_…).
// In ASP.NET Core, copy Request.Body into a MemoryStream and verify its bytes, before anything binds the body.
using System.Security.Cryptography;
using System.Text;

static class Webhooks
{
    public static bool Verify(string secret, string id, string timestamp, string signatures, byte[] body)
    {
        if (!long.TryParse(timestamp, out var seconds)) return false;
        if (Math.Abs(DateTimeOffset.UtcNow.ToUnixTimeSeconds() - seconds) > 300) return false;
        var key = Convert.FromBase64String(secret["whsec_".Length..]);
        byte[] signed = [.. Encoding.UTF8.GetBytes($"{id}.{timestamp}."), .. body];
        var expected = "v1," + Convert.ToBase64String(HMACSHA256.HashData(key, signed));
        return signatures.Split(' ').Any(one => CryptographicOperations.FixedTimeEquals(
            Encoding.UTF8.GetBytes(expected), Encoding.UTF8.GetBytes(one)));
    }
}
